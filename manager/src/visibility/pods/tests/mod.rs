mod of_home;
mod of_worker;
mod played;
